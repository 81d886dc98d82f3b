# Built in one image, run in another without compiler, package cache and root.
# requirements/ fixes every package by version and hash. A build repeats if the base is fixed too:
#   docker build --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:... --tag stowage .
ARG PYTHON_IMAGE=python:3.13-slim
# The build fails if this is not the version in scheduler/stowage/VERSION.
ARG VERSION=0.1.0

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_DEPS=1
WORKDIR /src
# requirements/tracing.txt adds OpenTelemetry.
ARG LOCKED=requirements/run.txt
COPY requirements requirements
RUN python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --require-hashes --only-binary :all: \
       --requirement requirements/build.txt
RUN python -m venv --without-pip /opt/stowage \
    && python -m pip --python /opt/stowage install --no-compile --require-hashes \
       --only-binary :all: --requirement "$LOCKED"
COPY pyproject.toml README.md LICENSE ./
COPY scheduler scheduler
ARG VERSION
RUN test "$VERSION" = "$(cat scheduler/stowage/VERSION)"
RUN /opt/build/bin/python -m pip wheel --no-build-isolation --wheel-dir /wheels . \
    && python -m pip --python /opt/stowage install --no-compile --no-index \
       --find-links /wheels stowage
# Bytecode of the Kubernetes client takes 50 MB, of which the scheduler imports few modules:
# the import writes the bytecode of those. It also shows that the scheduler starts.
RUN /opt/stowage/bin/python -m compileall -q -x '/(kubernetes|tests)/' /opt/stowage/lib \
    && /opt/stowage/bin/python -c 'import stowage.cli.composition'
RUN /opt/build/bin/cyclonedx-py environment --output-reproducible \
    --output-file /opt/stowage/sbom.cdx.json /opt/stowage

FROM ${PYTHON_IMAGE}
ARG PYTHON_IMAGE
ARG VERSION
LABEL org.opencontainers.image.title="Stowage" \
      org.opencontainers.image.description="A Kubernetes scheduler in Python that makes the decisions of kube-scheduler" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"
COPY --from=build /opt/stowage /opt/stowage
ENV HOME=/tmp \
    PATH=/opt/stowage/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10259
STOPSIGNAL SIGTERM
ENTRYPOINT ["stowage"]
CMD ["run"]
