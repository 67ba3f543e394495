package sqlitestore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// The test binary plays other processes when these are set.
const (
	roleEnv = "SQLITESTORE_TEST_ROLE"
	pathEnv = "SQLITESTORE_TEST_PATH"
	seedEnv = "SQLITESTORE_TEST_SEED"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "open":
		s, err := sqlitestore.Open(context.Background(), os.Getenv(pathEnv), sqlitestore.Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		s.Close()
	case "write":
		fail(writeForEver(context.Background()))
	case "sign up":
		fail(signUp(context.Background()))
	case "outgrow":
		fail(outgrow(context.Background()))
	default:
		fail(fmt.Errorf("no role %q", role))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeForEver writes with several goroutines and prints a line for all that
// was acknowledged: the number of a log's entry with its text, or the seed of a
// blob.
func writeForEver(ctx context.Context) error {
	s, err := sqlitestore.Open(ctx, os.Getenv(pathEnv), sqlitestore.Options{Create: true})
	if err != nil {
		return err
	}
	seed, err := strconv.Atoi(os.Getenv(seedEnv))
	if err != nil {
		return err
	}
	failed := make(chan error)
	var mu sync.Mutex
	ack := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format, args...) // straight into the pipe
	}
	for w := range 4 {
		go func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%d-%d-%d", seed, w, i)
				n, err := writeOne(ctx, s, text)
				if err != nil {
					failed <- err
					return
				}
				ack("entry %d %s\n", n, text)
			}
		}()
	}
	go func() {
		for i := 0; ; i++ {
			name := fmt.Sprintf("%d-%d", seed, i)
			b := killBlob(name)
			if err := s.PutBlob(ctx, sha256.Sum256(b), b); err != nil {
				failed <- err
				return
			}
			ack("blob 0 %s\n", name)
		}
	}()
	return <-failed
}

// writeOne makes one update: an entry, a record of the same text, and a count
// of both.
func writeOne(ctx context.Context, s store.Store, text string) (n uint64, err error) {
	err = s.Update(ctx, func(tx store.Tx) error {
		if n, err = tx.Append("log", fmt.Appendf(nil, "%q", text)); err != nil {
			return err
		}
		if _, err := tx.Put(store.Record{Kind: "write", ID: text, Body: fmt.Append(nil, n), Index: []string{fmt.Sprint("tens=", n/10)}}); err != nil {
			return err
		}
		r := store.Record{Kind: "count", ID: "n"}
		if n > 1 {
			if r, err = tx.Get("count", "n"); err != nil {
				return err
			}
		}
		r.Body = fmt.Append(nil, n)
		_, err = tx.Put(r)
		return err
	})
	return n, err
}

// killBlob is a blob of several chunks, made from its name.
func killBlob(name string) []byte {
	b := make([]byte, 3<<20)
	copy(b, name)
	copy(b[len(b)-len(name):], name)
	return b
}
