package devicetest

import "github.com/leat-go/leat/device/driver"

func (t *Tap) grapher(op Op) (driver.Grapher, error) {
	g, ok := t.Device.(driver.Grapher)
	if !ok {
		return nil, t.wrap(op, driver.ErrUnsupported)
	}
	return g, nil
}

// BeginCapture, and every method below, is driver.Grapher's.
func (t *Tap) BeginCapture(s driver.Stream) error {
	if skip, err := t.pass(BeginCapture, subject{stream: s}); skip {
		return err
	}
	g, err := t.grapher(BeginCapture)
	if err != nil {
		return err
	}
	return g.BeginCapture(s)
}

func (t *Tap) EndCapture(s driver.Stream) (driver.Graph, error) {
	if skip, err := t.pass(EndCapture, subject{stream: s}); skip {
		return 0, err
	}
	g, err := t.grapher(EndCapture)
	if err != nil {
		return 0, err
	}
	return g.EndCapture(s)
}

func (t *Tap) Capturing(s driver.Stream) (bool, error) {
	if skip, err := t.pass(Capturing, subject{stream: s}); skip {
		return false, err
	}
	g, err := t.grapher(Capturing)
	if err != nil {
		return false, err
	}
	return g.Capturing(s)
}

func (t *Tap) GraphNodes(h driver.Graph) ([]driver.Node, error) {
	if skip, err := t.pass(GraphNodes, subject{}); skip {
		return nil, err
	}
	g, err := t.grapher(GraphNodes)
	if err != nil {
		return nil, err
	}
	return g.GraphNodes(h)
}

func (t *Tap) FreeGraph(h driver.Graph) error {
	if skip, err := t.pass(FreeGraph, subject{}); skip {
		return err
	}
	g, err := t.grapher(FreeGraph)
	if err != nil {
		return err
	}
	return g.FreeGraph(h)
}

func (t *Tap) Instantiate(h driver.Graph) (driver.Exec, error) {
	if skip, err := t.pass(Instantiate, subject{}); skip {
		return 0, err
	}
	g, err := t.grapher(Instantiate)
	if err != nil {
		return 0, err
	}
	return g.Instantiate(h)
}

func (t *Tap) FreeExec(x driver.Exec) error {
	if skip, err := t.pass(FreeExec, subject{}); skip {
		return err
	}
	g, err := t.grapher(FreeExec)
	if err != nil {
		return err
	}
	return g.FreeExec(x)
}

func (t *Tap) LaunchGraph(s driver.Stream, x driver.Exec) error {
	if skip, err := t.pass(LaunchGraph, subject{stream: s}); skip {
		return err
	}
	g, err := t.grapher(LaunchGraph)
	if err != nil {
		return err
	}
	return g.LaunchGraph(s, x)
}

func (t *Tap) UpdateExec(x driver.Exec, h driver.Graph) error {
	if skip, err := t.pass(UpdateExec, subject{}); skip {
		return err
	}
	g, err := t.grapher(UpdateExec)
	if err != nil {
		return err
	}
	return g.UpdateExec(x, h)
}
