package main

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/leat-go/leat/observe/ui"
)

// watch serves a page of both pipelines until the training is closed, and says where. An
// address without a host is one of this machine alone.
func (t *training) watch(address string) (url string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = "localhost"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", err
	}
	page := ui.New(ui.Options{Hosts: []string{host}})
	page.Show("train", t.pf)
	page.Show("test", t.test)
	mux := http.NewServeMux()
	mux.Handle("/debug/leat/", page)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // until it is closed
	t.onClose(func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return "http://" + listener.Addr().String() + "/debug/leat/", nil
}
