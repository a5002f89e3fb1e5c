module kind-node/pause

go 1.26.0
