# Built in one image, run in another without compilers, caches and root.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/stowage
COPY pyproject.toml README.md LICENSE ./
COPY scheduler scheduler
RUN /opt/stowage/bin/pip install --no-cache-dir --disable-pip-version-check .

FROM python:3.13-slim
COPY --from=build /opt/stowage /opt/stowage
ENV PATH=/opt/stowage/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["stowage"]
CMD ["run"]
