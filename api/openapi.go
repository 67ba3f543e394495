package api

import (
	_ "embed"
	"slices"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the document of the API: openapi.yaml.
func OpenAPI() []byte { return slices.Clone(openAPI) }
