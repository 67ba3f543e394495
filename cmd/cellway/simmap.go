package main

import (
	"bytes"

	"github.com/cellway/cellway/routemap"
)

// readMap reads an archive of a map or its content as JSON.
func readMap(text []byte) (*routemap.Map, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		content, err := routemap.ParseContent(text)
		if err != nil {
			return nil, err
		}
		return routemap.Build(content, 1)
	}
	v, err := routemap.ReadArchive(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	base, err := routemap.DecodeBase(v.Base)
	if err != nil {
		return nil, err
	}
	return routemap.Open(v.Manifest, base, v.Overlay)
}
