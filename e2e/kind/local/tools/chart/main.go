// Command chart prints the objects of a Helm chart with its default values: chart FOLDER NAME NAMESPACE.
package main

import (
	"fmt"
	"log"
	"os"
	"path"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	chart, err := loader.LoadDir(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: os.Args[2], Namespace: os.Args[3], IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, nil, options, chartutil.DefaultCapabilities)
	if err != nil {
		log.Fatal(err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		log.Fatal(err)
	}
	names := make([]string, 0, len(files))
	for name, text := range files {
		if path.Ext(name) == ".yaml" && strings.TrimSpace(text) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n%s\n", files[name])
	}
}
