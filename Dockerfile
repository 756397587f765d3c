FROM node:20.20.2-bookworm-slim AS pages
WORKDIR /src
COPY static/npm ./
RUN npm ci --no-audit --no-fund

FROM python:3.11.14-slim-bookworm AS docs
WORKDIR /src
COPY requirements-docs.lock ./
RUN python -m venv /opt/docs \
    && /opt/docs/bin/pip install --no-cache-dir --require-hashes -r requirements-docs.lock
COPY . .
RUN /opt/docs/bin/python -m docs.build

FROM python:3.11.14-slim-bookworm AS build
RUN apt-get update -qq && apt-get install -qq --no-install-recommends gcc libc6-dev
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/holdfast \
    && /opt/holdfast/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements.lock -r requirements-build.lock
COPY . .
COPY --from=pages /src/node_modules/cometd/*.js static/cometd/
COPY --from=docs /src/static/docs static/docs/
RUN COMPILE_CORE=always /opt/build/bin/hatchling build -t wheel -d /opt/dist \
    && cd client && /opt/build/bin/hatchling build -t wheel -d /opt/dist \
    && /opt/holdfast/bin/pip install --no-cache-dir --no-index --no-deps /opt/dist/*.whl \
    && /opt/holdfast/bin/pip uninstall --yes pip setuptools

FROM python:3.11.14-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin holdfast \
    && install --directory --owner=10001 --mode=700 /data
COPY --from=build /opt/holdfast /opt/holdfast
# The last three are for commands that run beside the server: docker exec CONTAINER holdfast session list
ENV PATH=/opt/holdfast/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOLDFAST_URL=http://127.0.0.1:8081 \
    HOLDFAST_CLIENT_URL=http://127.0.0.1:8080 \
    HOLDFAST_TOKEN_FILE=/data/admin-token
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080 8081
# No proxy: the question goes to the container itself, whatever its environment says.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", \
    "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8080/readyz', timeout=2)"]
# Open to whoever reaches the published port: who that is, is decided outside the container. The
# administration has a port of its own, for operators alone: their tokens open it, without TLS.
CMD ["holdfast", "serve", "--host", "0.0.0.0", "--port", "8080", "--open", \
    "--admin", "0.0.0.0:8081", "--data", "/data"]
