# The control plane. Build it from the root of the repository:
#
#   docker build -f deploy/container/control.Dockerfile -t cellway-control .
#
# The tag is the toolchain of go.mod; a test keeps the two alike.
FROM golang:1.27.3 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/cellway-control ./cmd/cellway-control
# The store goes here; the owner must be the user below.
RUN install -d -m 0700 -o 65532 -g 65532 /out/state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/cellway-control /cellway-control
COPY --from=build --chown=65532:65532 /out/state /var/lib/cellway-control
USER 65532:65532
VOLUME ["/var/lib/cellway-control"]
# By default it listens on the loopback of the container, where nobody reaches it:
# set listen, as in deploy/README.md.
EXPOSE 7700
ENTRYPOINT ["/cellway-control"]
