package serving

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/cellway/cellway/internal/plaintext"
)

// What a list of workers holds is shown to people as it is.
func TestAnswersForPeopleEscapeWhatDeceives(t *testing.T) {
	const id = "w\u202e1"
	rec := httptest.NewRecorder()
	JSON(rec, map[string]string{"id": id})
	var back map[string]string
	if err := json.Unmarshal(rec.Body.Bytes(), &back); err != nil || back["id"] != id || plaintext.Hides(rec.Body.String()) {
		t.Errorf("%s, %v", rec.Body, err)
	}
}
