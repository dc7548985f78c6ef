package serve

// tenant is one of those who share a line, while it has requests.
type tenant struct {
	name    string
	open    int         // requests that have a place
	outside list[entry] // those that wait for one, in the order of coming
	ready   heap        // those that stand in the line

	turn    links[tenant] // among those with ready requests
	waiting links[tenant] // among those with some outside
}

func linksOfTurn(t *tenant) *links[tenant]    { return &t.turn }
func linksOfWaiting(t *tenant) *links[tenant] { return &t.waiting }

// maxSpareTenants bounds what is kept of tenants that have no requests any more.
const maxSpareTenants = 64

// tenantOf is the tenant of that name. The caller holds l.mu.
func (l *line) tenantOf(name string) *tenant {
	if t, ok := l.tenants[name]; ok {
		return t
	}
	var t *tenant
	if n := len(l.spare); n > 0 {
		t = l.spare[n-1]
		l.spare = l.spare[:n-1]
	} else {
		t = &tenant{
			outside: list[entry]{links: linksOfEntry},
			ready:   heap{less: goesFirst, index: indexOfTurn},
		}
	}
	t.name = name
	l.tenants[name] = t
	return t
}

// forget ends a tenant that has no requests, so that there are never more of them than
// requests.
func (l *line) forget(t *tenant) {
	if t.open > 0 || t.outside.n > 0 {
		return
	}
	delete(l.tenants, t.name)
	t.name = ""
	if len(l.spare) < maxSpareTenants {
		l.spare = append(l.spare, t)
	}
}

// full is why a tenant can't have another place, nil if it can.
func (l *line) full(t *tenant) error {
	switch {
	case l.open >= l.options.Limit:
		return ErrFull
	case t.open >= l.options.TenantLimit:
		return ErrTenantFull
	}
	return nil
}

// letIn gives places that are free to those who wait for one, in the order of coming; a
// tenant that may have no more holds up nobody else.
func (l *line) letIn() {
	for l.open < l.options.Limit {
		var first *entry
		for t := l.waiting.first; t != nil; t = t.waiting.next {
			if e := t.outside.first; t.open < l.options.TenantLimit && (first == nil || e.number < first.number) {
				first = e
			}
		}
		if first == nil {
			return
		}
		l.leaveOutside(first)
		l.admit(first)
	}
}

// stayOutside has e wait for a place.
func (l *line) stayOutside(e *entry) {
	t := e.tenant
	e.state = outside
	if t.outside.n == 0 {
		l.waiting.append(t)
	}
	t.outside.append(e)
	l.outside++
}

// leaveOutside ends that.
func (l *line) leaveOutside(e *entry) {
	t := e.tenant
	t.outside.remove(e)
	if t.outside.n == 0 {
		l.waiting.remove(t)
	}
	l.outside--
}
