# Two images from one file:
#   docker build --target slim -t mcp-proxy .        only the binary, for upstreams reached over HTTP
#   docker build --target full -t mcp-proxy:full .   with Node and uv, for upstreams started with npx or uvx
#
# Mount the folder of the configuration at /config; mcp-proxy.json, mcp-proxy.yaml and mcp.json are found there. A
# container listens on all addresses, so the configuration must name tokens or say {"auth": {"mode": "none"}}.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/mcp-proxy ./cmd/mcp-proxy
# A volume takes the owner of the folder that it covers.
RUN mkdir -p /out/state /out/config && chown -R 65532:65532 /out/state

FROM node:22-bookworm-slim AS full
ARG UV_VERSION=0.13.8
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 python3-pip python3-venv \
    && pip3 install --no-cache-dir --break-system-packages "uv==${UV_VERSION}" \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 65532 --create-home --home-dir /home/mcp mcp
COPY --from=build /out/mcp-proxy /mcp-proxy
COPY --from=build --chown=65532:65532 /out/state /state
COPY --from=build /out/config /config
# npx and uvx keep what they download below HOME.
ENV HOME=/home/mcp XDG_STATE_HOME=/state
USER 65532:65532
WORKDIR /config
VOLUME /state
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/mcp-proxy", "health"]
ENTRYPOINT ["/mcp-proxy"]
CMD ["serve", "--listen", "0.0.0.0:8080"]

FROM scratch AS slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/mcp-proxy /mcp-proxy
COPY --from=build --chown=65532:65532 /out/state /state
COPY --from=build /out/config /config
ENV HOME=/state XDG_STATE_HOME=/state
USER 65532:65532
WORKDIR /config
VOLUME /state
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/mcp-proxy", "health"]
ENTRYPOINT ["/mcp-proxy"]
CMD ["serve", "--listen", "0.0.0.0:8080"]
