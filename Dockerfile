# The manager's image. Its user has a number, because Kubernetes cannot see that a name is not root; it writes to /tmp alone.
#
#   docker build -t registry.example.org/capo:v1.0.0 .
FROM docker.io/library/python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY api api
COPY controllers controllers
COPY capo capo
RUN python -m venv /opt/capo && /opt/capo/bin/pip install --no-cache-dir --disable-pip-version-check .

FROM docker.io/library/python:3.13-slim
COPY --from=build /opt/capo /opt/capo
# The Go provider's entry point: arguments after it are flags of the manager, and patches may name it as command.
RUN printf '#!/bin/sh\nexec /opt/capo/bin/capo run "$@"\n' > /manager && chmod 0755 /manager
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["/manager"]
