# Built in one image, run in another without compiler, package cache and root.
# For a build that can be repeated, give the base by its digest:
#   docker build --build-arg PYTHON_IMAGE=python:3.13-slim@sha256:... --tag stowage:0.1.0 .
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY scheduler scheduler
RUN python -m pip wheel --no-cache-dir --disable-pip-version-check --wheel-dir /wheels .
RUN python -m venv --without-pip /opt/stowage \
    && python -m pip --python /opt/stowage install --no-cache-dir --disable-pip-version-check \
       --no-index --find-links /wheels stowage

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Stowage" \
      org.opencontainers.image.description="A Kubernetes scheduler in Python" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
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
