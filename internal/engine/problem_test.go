package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cellway/cellway"
)

func TestAProblemIsOneLine(t *testing.T) {
	text := string(Problem(503, cellway.CellDrained, "not \"now\"\nor later"))
	if !strings.HasSuffix(text, "}\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
	var got struct{ Code, Detail string }
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Code != "cell_drained" || got.Detail != "not \"now\"\nor later" {
		t.Errorf("%+v, %v", got, err)
	}
}
