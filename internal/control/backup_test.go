package control_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestAgeOfTheLastBackupOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		want := func(s *control.Service, age time.Duration, made bool) {
			t.Helper()
			if got := s.Stats().BackupAge; got != age || s.LastBackup().IsZero() == made {
				t.Errorf("the last backup is %v old, made %v; want %v, made: %t", got, s.LastBackup(), age, made)
			}
		}
		want(s, 0, false) // there is nothing to lose
		fleet(t, s, routemap.Settings{}, 1)
		time.Sleep(time.Hour)
		want(s, time.Hour, false)
		stop()
		s, stop = start(t, st)
		want(s, time.Hour, false)
		for range 2 {
			if err := s.Backup(t.Context(), io.Discard); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			want(s, time.Minute, true)
		}
		stop()
		time.Sleep(24 * time.Hour)
		want(open(t, st), 24*time.Hour+time.Minute, true)
	})
}

// A copy that broke off is none; one that only could not be noted is.
func TestOnlyWholeBackupsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faultstore.New(memstore.New())
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 1)
		time.Sleep(time.Hour)
		if err := s.Backup(t.Context(), brokenPipe{}); err == nil || !s.LastBackup().IsZero() {
			t.Errorf("%v, and the last one was made at %v", err, s.LastBackup())
		}
		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
			time.Sleep(time.Hour)
			st.Fail(st.Writes()+1, mode)
			if err := s.Backup(t.Context(), io.Discard); err != nil || s.Stats().BackupAge > time.Minute {
				t.Errorf("%v: %v, %v old", mode, err, s.Stats().BackupAge)
			}
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Of two backups at the same time, the one that began later is the last,
// whichever ends first.
func TestABackupThatTakesLongDoesNotHideALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		fleet(t, s, routemap.Settings{}, 1)
		time.Sleep(time.Hour)
		slow, release := &slowWriter{until: make(chan struct{})}, make(chan error)
		go func() { release <- s.Backup(t.Context(), slow) }()
		time.Sleep(time.Minute)
		begun := time.Now()
		if err := s.Backup(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		close(slow.until)
		if err := <-release; err != nil {
			t.Fatal(err)
		}
		if got := s.LastBackup(); !got.Equal(begun) {
			t.Errorf("the last backup is of %v, want %v", got, begun)
		}
		stop()
		if got := open(t, st).LastBackup(); !got.Equal(begun) {
			t.Errorf("after a restart, the last backup is of %v, want %v", got, begun)
		}
	})
}

// A slowWriter takes what is written once it may.
type slowWriter struct{ until chan struct{} }

func (w *slowWriter) Write(b []byte) (int, error) {
	<-w.until
	return len(b), nil
}
