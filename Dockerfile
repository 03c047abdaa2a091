# Postroom's image. For the classic builder as well: nothing here needs BuildKit.
#
#   docker build -t postroom .                       compiles, and needs nothing but Docker
#   docker build --target prebuilt -f Dockerfile DIR takes the program DIR/postroom as it is
#
# The classic builder makes every stage above the wanted one, so the compiler comes last.

ARG BASE=debian:13-slim
ARG RUST=rust:1.95-slim-trixie

FROM ${BASE} AS runtime
# The client of PostgreSQL must not be older than the server: pg_dump refuses one.
RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        ca-certificates postgresql-client-17 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && groupadd --system --gid 10001 postroom \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin postroom
LABEL org.opencontainers.image.title="Postroom" \
    org.opencontainers.image.description="A self-hosted mail control plane: a truthful sending API beside docker-mailserver" \
    org.opencontainers.image.licenses="MIT"
# By number, so that it can be proved not to be root.
USER 10001:10001
EXPOSE 3050
STOPSIGNAL SIGTERM
# The health page gives the database 2 s, and the question to it 5 s.
HEALTHCHECK --interval=10s --timeout=8s --start-period=60s --retries=3 CMD ["postroom", "healthcheck"]
ENTRYPOINT ["postroom"]
CMD ["serve"]

FROM runtime AS prebuilt
COPY postroom /usr/local/bin/postroom

FROM ${RUST} AS build
WORKDIR /source
COPY . .
RUN cargo build --locked --release

FROM runtime
COPY --from=build /source/target/release/postroom /usr/local/bin/postroom
