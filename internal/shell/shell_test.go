package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestAShellReadsTheWordsBack(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	words := []string{"plain", "", "two words", "it's", `a\b"c`, "$HOME", "a;b", "new\nline", "ü", "*", "{tenant}.x"}
	out, err := exec.Command(sh, "-c", `printf '%s\0' `+Join(words)).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, words) {
		t.Errorf("a shell reads %s as %q, %v; want %q", Join(words), got, err, words)
	}
}

func TestPlainWordsStayAsTheyAre(t *testing.T) {
	if got := Join([]string{"cellway", "drain", "cell-001", "--reason", "it's hot"}); got != `cellway drain cell-001 --reason 'it'\''s hot'` {
		t.Error(got)
	}
}
