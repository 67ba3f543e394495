package feed

import (
	"cmp"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Status is how a feed fares, for people and for metrics.
type Status struct {
	Fleet string `json:"fleet"`
	Ready bool   `json:"ready"` // a map is in use

	Version    cellway.Version `json:"map_version"`
	Digest     routemap.Digest `json:"map_digest,omitzero"` // of the manifest
	Parent     cellway.Version `json:"map_parent"`
	Base       routemap.Part   `json:"base,omitzero"`
	Overlay    routemap.Part   `json:"overlay,omitzero"`
	Keys       int             `json:"keys"` // with an entry
	Cells      int             `json:"cells"`
	CreatedAt  time.Time       `json:"created_at,omitzero"`  // by the publisher's clock
	AcceptedAt time.Time       `json:"accepted_at,omitzero"` // by this router's
	From       string          `json:"from,omitempty"`       // the source, or "disk"
	Distrusted bool            `json:"distrusted,omitempty"` // its keys were revoked since

	// ConfirmedAt is when a source last said that the map in use is its newest,
	// and Age the time since, or since the start if none did.
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
	Age         float64   `json:"age_seconds"`
	Took        float64   `json:"took_seconds"` // from the manifest to the swap, the last time

	Seen     cellway.Version   `json:"seen_version"` // the highest, refused ones too
	Swaps    uint64            `json:"swaps"`
	Refused  []Refusal         `json:"refused"`
	Refusals map[string]uint64 `json:"refusals"` // by reason

	Sources   []SourceStatus `json:"sources"`
	Kept      []KeptMap      `json:"kept"`                 // on the disk, newest first
	Suspects  []string       `json:"suspects,omitempty"`   // parts that are not used
	Fallback  bool           `json:"fallback"`             // something newer is suspect
	RetryAt   time.Time      `json:"retry_at,omitzero"`    // when it is tried again
	Unkept    bool           `json:"unkept"`               // the map in use is not on the disk yet
	Disk      Trouble        `json:"disk_errors"`          //
	KeysError string         `json:"keys_error,omitempty"` // why the keyring could not be read
}

// A SourceStatus is how one source fares.
type SourceStatus struct {
	Name       string          `json:"name"`
	Answers    uint64          `json:"answers"`
	Failures   uint64          `json:"failures"`
	AnsweredAt time.Time       `json:"answered_at,omitzero"`
	Error      string          `json:"error,omitempty"` // of the last time, or of the last pull of everything
	ErrorAt    time.Time       `json:"error_at,omitzero"`
	Newest     cellway.Version `json:"newest_version"` // that it has shown
}

// Status returns how the feed fares now. It waits for nothing.
func (f *Feed) Status() Status {
	st := Status{Fleet: f.cfg.Fleet, Kept: f.store.kept(), Suspects: f.store.suspects(), Disk: f.store.trouble.status()}
	if k, ok := f.cfg.Keys.(interface{ Err() error }); ok && k.Err() != nil {
		st.KeysError = k.Err().Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.inUse; a != nil {
		man := a.m.Manifest()
		st.Ready, st.Version, st.Digest, st.Parent = true, man.Version, man.Digest(), man.Parent
		st.Base, st.Overlay, st.Keys, st.Cells = man.Base, man.Overlay, a.m.Keys(), len(a.m.Cells())
		st.CreatedAt, st.AcceptedAt, st.From = man.CreatedAt, a.at, a.source
	}
	st.Distrusted, st.Took, st.Seen, st.Swaps, st.Unkept = f.distrust, f.took.Seconds(), f.seen, f.swaps, f.toKeep != nil
	st.Refused, st.Refusals = f.refused.list(), map[string]uint64{}
	for _, reason := range Reasons() {
		st.Refusals[reason] = f.refused.byReason[reason]
	}
	st.Fallback, st.RetryAt = f.trials.suspect != nil, f.trials.retryAt
	for _, s := range f.sources {
		st.Sources = append(st.Sources, SourceStatus{s.String(), s.answers, s.failures, s.answered, cmp.Or(s.err, s.lacks), s.errAt, s.newest})
		if s.confirmed.After(st.ConfirmedAt) {
			st.ConfirmedAt = s.confirmed
		}
	}
	switch {
	case !st.ConfirmedAt.IsZero():
		st.Age = time.Since(st.ConfirmedAt).Seconds()
	case !f.started.IsZero():
		st.Age = time.Since(f.started).Seconds()
	}
	return st
}

// Map returns the map in use, or nil.
func (f *Feed) Map() *routemap.Map {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse == nil {
		return nil
	}
	return f.inUse.m
}
