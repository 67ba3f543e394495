package client

import (
	"context"
	"iter"
	"maps"
	"net/url"
	"strconv"

	"github.com/cellway/cellway/api"
)

// pageSize is how many records a list asks for at a time.
const pageSize = 500

// list walks over all pages of path. It ends at the first error.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := url.Values{"limit": {strconv.Itoa(pageSize)}}
		maps.Copy(q, query)
		for {
			var page api.Page[T]
			if err := c.get(ctx, path, q, pageOf{&page, new(T)}); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("after", page.Next)
			q.Del("last") // of the journal: where to start
		}
	}
}

// All gathers a list, or returns its error.
func All[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
