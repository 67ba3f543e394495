# A gateway, the front door of one cell. Build it from the root of the repository:
#
#   docker build -f deploy/container/gateway.Dockerfile -t cellway-gateway .
#
# The tag is the toolchain of go.mod; a test keeps the two alike.
FROM golang:1.27.3 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/cellway-gateway ./cmd/cellway-gateway
# The last good list of workers goes here; the owner must be the user below.
RUN install -d -m 0700 -o 65532 -g 65532 /out/state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/cellway-gateway /cellway-gateway
COPY --from=build --chown=65532:65532 /out/state /var/lib/cellway-gateway
USER 65532:65532
VOLUME ["/var/lib/cellway-gateway"]
EXPOSE 8081 9091
ENTRYPOINT ["/cellway-gateway"]
