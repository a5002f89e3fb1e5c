# The manager's image. `make image` builds it, and docs/how-to/image.md describes what it contains. Its user is a number, because
# Kubernetes cannot check that a name is not root; it writes to /tmp alone. Nothing runs in the last stage: the base needs no shell.
ARG BUILDER=docker.io/library/python:3.13-slim
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BUILDER} AS build
# A plain Debian as builder, for a base such as distroless that has Debian's Python.
RUN command -v python3 >/dev/null || (apt-get update && apt-get install -y --no-install-recommends python3-venv ca-certificates)
# LOCK: image, or simulator for an image with the simulated cloud as well.
ARG LOCK=image
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
WORKDIR /src
COPY image image
RUN python3 -m venv /build && /build/bin/pip install --no-compile --require-hashes --only-binary=:all: --requirement image/build.txt
RUN python3 -m venv --without-pip /opt/capo \
 && /build/bin/pip --python /opt/capo/bin/python install --no-compile --require-hashes --only-binary=:all: --requirement image/${LOCK}.txt
COPY pyproject.toml README.md ./
COPY api api
COPY controllers controllers
COPY capo capo
# The time of every file: images of one commit are equal.
ARG SOURCE_DATE_EPOCH=0
RUN chmod -R u=rwX,go=rX . && /build/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheels . \
 && /build/bin/pip --python /opt/capo/bin/python install --no-compile --no-deps --no-index /wheels/*.whl \
 && /opt/capo/bin/python image/layout.py /image

FROM ${BASE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="capo" \
      org.opencontainers.image.description="OpenStack infrastructure provider for Kubernetes Cluster API" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image/ /
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["/manager"]
