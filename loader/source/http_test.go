package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/source/sourcetest"
)

// object is a Source of one's own: what lies at a URL, on a server that knows ranges and
// tags.
type object string

func (o object) Name() string { return string(o) }

func (o object) Open(ctx context.Context) (source.File, error) {
	answer, err := o.ask(ctx, http.MethodHead, nil)
	if err == nil && answer.ContentLength < 0 {
		err = errors.Join(errors.New("the server doesn't say how long it is"), answer.Body.Close())
	}
	if err != nil {
		return nil, &source.Error{Source: o.Name(), Op: "open", Offset: -1, Err: err}
	}
	info := source.Info{Size: answer.ContentLength, Version: answer.Header.Get("ETag")}
	read := func(ctx context.Context, p []byte, off int64) (int, error) {
		return o.get(ctx, info.Version, p, off)
	}
	return source.NewFile(o.Name(), info, read, nil), answer.Body.Close()
}

// get fetches as many bytes as p has room for, if the object is still that of the tag.
func (o object) get(ctx context.Context, tag string, p []byte, off int64) (int, error) {
	answer, err := o.ask(ctx, http.MethodGet, http.Header{
		"Range":    {fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)},
		"If-Match": {tag},
	})
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return io.ReadFull(answer.Body, p)
}

// ask sends a request. The caller closes the answer's body.
func (o object) ask(ctx context.Context, method string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, o.Name(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return answer, nil
	case http.StatusPreconditionFailed:
		err = source.ErrChanged
	case http.StatusNotFound:
		err = fs.ErrNotExist
	default:
		err = fmt.Errorf("the server answers %s", answer.Status)
	}
	_ = answer.Body.Close()
	return nil, err
}

// The interface is enough for a store of objects: reads are given up with their context,
// and one object is not taken for what replaced it.
func TestASourceOverHTTP(t *testing.T) {
	data := random(20_000)
	tag := atomic.Value{}
	tag.Store(`"first"`)
	hang := make(chan context.CancelFunc, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/object" {
			http.NotFound(w, r)
			return
		}
		select {
		case cancel := <-hang:
			cancel()
			<-r.Context().Done()
		default:
		}
		w.Header().Set("ETag", tag.Load().(string))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer server.Close()
	s := object(server.URL + "/object")
	sourcetest.Run(t, s, data)
	pool := source.NewPool(1)
	sourcetest.Run(t, pool.Source(s), data)

	_, err := object(server.URL + "/nothing").Open(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)

	f, err := s.Open(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	hang <- cancel
	_, err = f.ReadAt(ctx, make([]byte, 10), 0)
	require.ErrorIs(t, err, context.Canceled)
	tag.Store(`"second"`)
	_, err = f.ReadAt(t.Context(), make([]byte, 10), 5)
	require.ErrorIs(t, err, source.ErrChanged)
	info, err := source.Stat(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, `"second"`, info.Version)
}
