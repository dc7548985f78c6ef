package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/quota"
)

// appended are the steps that runs have put to those of a Mix.
type appended struct {
	// To is a hash of the steps that the program declares, which tell one Mix from another.
	To    uint64         `json:"to,string"`
	Steps []appendedStep `json:"steps"`
}

type appendedStep struct {
	From    int64     `json:"from"`
	Weights []float64 `json:"weights"`
}

// newAppended are those of steps behind the declared ones.
func newAppended(steps []quota.Step, declared int) appended {
	a := appended{To: hashOf(steps[:declared])}
	for _, s := range steps[declared:] {
		a.Steps = append(a.Steps, appendedStep{s.From, s.Weights})
	}
	return a
}

// hashOf is a hash of declared steps.
func hashOf(steps []quota.Step) uint64 {
	var words []uint64
	for _, s := range steps {
		words = append(words, stepWords(s)...)
	}
	return mix.Hash(words...)
}

func (a appended) equal(b appended) bool {
	return a.To == b.To && slices.EqualFunc(a.Steps, b.Steps, appendedStep.equal)
}

func (s appendedStep) equal(as appendedStep) bool {
	return s.From == as.From && slices.Equal(s.Weights, as.Weights)
}

// begins reports whether a has no step that b has not.
func (a appended) begins(b appended) bool {
	return a.To == b.To && len(a.Steps) <= len(b.Steps) && slices.EqualFunc(a.Steps, b.Steps[:len(a.Steps)], appendedStep.equal)
}

// put is all with some more: a Mix may be part of a stream several times.
func put(all []appended, more ...appended) []appended {
	all = slices.Clip(all) // other streams have it too
	for _, a := range more {
		if !slices.ContainsFunc(all, a.equal) {
			all = append(all, a)
		}
	}
	return all
}

// marshal is what a State keeps of them.
func marshal(all []appended) json.RawMessage {
	if len(all) == 0 {
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil // weights that are no numbers are a mistake that Err tells
	}
	return text
}

// unmarshal reads what a State has kept.
func unmarshal(kept json.RawMessage) (all []appended, err error) {
	if len(kept) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(kept, &all); err != nil {
		return nil, fmt.Errorf("stream: the steps that the state has kept: %w", err)
	}
	return all, nil
}

// extends is an error if a State has kept a step that is not among the appended ones.
func extends(all []appended, kept json.RawMessage) error {
	was, err := unmarshal(kept)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range was {
		if !slices.ContainsFunc(all, a.begins) {
			errs = append(errs, fmt.Errorf("stream: no MixSteps has the appended steps %v: StepsOf tells them", a.Steps))
		}
	}
	return errors.Join(errs...)
}

// StepsOf are the steps that a program declares for a MixSteps, and behind them those that had
// been appended when a State was saved. A program that is started again makes its MixSteps of
// them, and so it need not know what an earlier run has decided. The zero State has none.
//
// Two MixSteps of one program have different declared steps, or the same appended ones.
func StepsOf(state loader.State, declared ...Step) ([]Step, error) {
	all, err := unmarshal(state.Kept)
	if err != nil {
		return nil, err
	}
	of := make([]quota.Step, len(declared))
	for i, s := range declared {
		of[i] = quota.Step{From: s.From, Weights: s.Weights}
	}
	to, steps := hashOf(of), slices.Clone(declared)
	for _, a := range all {
		switch {
		case a.To != to:
			continue
		case len(steps) > len(declared):
			return nil, errors.New("stream: StepsOf: several mixes have the same declared steps and not the same appended ones")
		}
		for _, s := range a.Steps {
			steps = append(steps, Step{From: s.From, Weights: slices.Clone(s.Weights), Appended: true})
		}
	}
	return steps, nil
}
