package ui

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

//go:embed page
var assets embed.FS

// Options tunes a Page. The zero value is ready to use.
type Options struct {
	// Hosts are names and addresses, without a port, under which the page may be asked for
	// beside those of the loopback interface: "node7", "10.0.0.7", "fd00::7".
	Hosts []string
}

// A Page shows pipelines. It is an http.Handler, for any path that ends in a slash, and an
// expvar.Var. It owns no goroutine, and looks at a pipeline only when somebody asks. It is
// safe for concurrent use.
type Page struct {
	hosts []string

	mu    sync.Mutex
	shown []*shown // in the order of the calls of Show
}

// shown is a pipeline on a page.
type shown struct {
	name   string
	take   func() *observe.Snapshot
	state  func() loader.State
	window *window
}

// New makes a Page that shows nothing yet.
func New(o Options) *Page {
	p := &Page{}
	for _, h := range o.Hosts {
		p.hosts = append(p.hosts, canonical(h))
	}
	return p
}

// Handler is a Page of pipelines, which are called "pipeline 1" and so on.
func Handler(pipelines ...*prefetch.Prefetcher) *Page {
	p := New(Options{})
	for i, pf := range pipelines {
		p.Show(fmt.Sprintf("pipeline %d", i+1), pf)
	}
	return p
}

// Show adds a pipeline under a name. One that has the name already makes room for it. The Page
// borrows pf until Hide; pf may be closed before.
func (p *Page) Show(name string, pf *prefetch.Prefetcher) {
	p.show(name, func() *observe.Snapshot { return observe.Take(pf) }, pf.State)
}

// ShowGroup adds a pipeline for each device of a group, named after it: "train, device 0". The
// Page borrows g until each of them is hidden; g may be closed before.
func (p *Page) ShowGroup(name string, g *group.Group) {
	for i := range g.Plan().Devices {
		p.show(fmt.Sprintf("%s, device %d", name, i), func() *observe.Snapshot { return observe.TakeGroup(g)[i] }, g.State)
	}
}

func (p *Page) show(name string, take func() *observe.Snapshot, state func() loader.State) {
	s := &shown{name: name, take: take, state: state, window: newWindow(take)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(name); i >= 0 {
		p.shown[i] = s
		return
	}
	p.shown = append(p.shown, s)
}

// Hide takes a pipeline from the page, if it is there.
func (p *Page) Hide(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(name); i >= 0 {
		p.shown = slices.Delete(p.shown, i, i+1)
	}
}

func (p *Page) index(name string) int {
	return slices.IndexFunc(p.shown, func(s *shown) bool { return s.name == name })
}

func (p *Page) all() []*shown {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.shown)
}

// Report is what the page shows now. Figures of the last seconds are since an earlier call,
// or since Show.
func (p *Page) Report() Report {
	r := Report{Format: Format, Process: os.Getpid(), Taken: time.Now(), Pipelines: []Pipeline{}}
	r.Node, _ = os.Hostname() // without one the page has no name for the machine
	for _, s := range p.all() {
		r.Pipelines = append(r.Pipelines, s.report())
	}
	return r
}

// String is the Report as JSON, as expvar.Var has it.
func (p *Page) String() string {
	text, err := json.Marshal(p.Report())
	if err != nil {
		panic(err) // it has no value that JSON lacks
	}
	return string(text)
}

// ServeHTTP serves the page, and below it report.json, timeline.svg and timeline.json.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.admits(w, r) {
		return
	}
	private(w.Header())
	switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
	case "":
		asset(w, r, "index.html")
	case "page.css", "page.js":
		asset(w, r, name)
	case "report.json":
		send(w, r, "application/json", p.String())
	case "timeline.svg", "timeline.json":
		p.timeline(w, r, name)
	default:
		http.NotFound(w, r)
	}
}

// asset sends a file of the page.
func asset(w http.ResponseWriter, r *http.Request, name string) {
	text, err := assets.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	kinds := map[string]string{"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
	send(w, r, kinds[name]+"; charset=utf-8", string(text))
}

func send(w http.ResponseWriter, r *http.Request, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text)) // an error is the client's, which has gone
	}
}

const (
	defaultSteps = 8
	mostSteps    = 64
)

// timeline sends the last steps of a pipeline: as a picture so many as the request asks for,
// as JSON all that are kept.
func (p *Page) timeline(w http.ResponseWriter, r *http.Request, name string) {
	query := r.URL.Query()
	all := p.all()
	i := slices.IndexFunc(all, func(s *shown) bool { return s.name == query.Get("pipeline") })
	if i < 0 {
		http.Error(w, "no pipeline of that name is shown", http.StatusNotFound)
		return
	}
	s := all[i].take()
	rec, ok := s.Plan.Options.Recorder.(*observe.Recorder)
	if !ok {
		http.Error(w, "the pipeline has no observe.Recorder in its Options", http.StatusNotFound)
		return
	}
	steps := defaultSteps
	if asked := query.Get("steps"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil || n < 1 || n > mostSteps {
			http.Error(w, fmt.Sprintf("steps must be a number from 1 to %d", mostSteps), http.StatusBadRequest)
			return
		}
		steps = n
	}
	t := rec.Timeline(s.Title())
	var b bytes.Buffer
	kind, err := "image/svg+xml", error(nil)
	if name == "timeline.svg" {
		err = t.Last(steps).WriteSVG(&b)
	} else {
		kind, err = "application/json", t.WriteJSON(&b)
		w.Header().Set("Content-Disposition", `attachment; filename="timeline.json"`)
	}
	if err != nil {
		panic(err) // a Buffer takes all
	}
	send(w, r, kind, b.String())
}
