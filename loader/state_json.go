package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// UnmarshalJSON reads what a State marshals to, and nothing else: a misspelt key would
// be a place at the beginning. Its error joins a *StateError for every key that is
// missing or unknown, and then s is as it was.
//
// A State of another version may have other keys. Check refuses it.
func (s *State) UnmarshalJSON(text []byte) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("loader: the state: %w", err)
	}
	if found == nil {
		return nil // null, which by convention changes nothing
	}
	type state State // without this method
	var read state
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("loader: the state: %w", err)
	}
	if _, ok := found["version"]; !ok || string(found["version"]) == "null" || read.Version == stateVersion {
		if err := checkKeys(found); err != nil {
			return err
		}
	}
	*s = State(read)
	return nil
}

// checkKeys takes the keys of a State out of found, and reports those that are missing
// and those that are left.
func checkKeys(found map[string]json.RawMessage) error {
	var errs []error
	for _, field := range reflect.VisibleFields(reflect.TypeFor[State]()) {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, ok := found[key]
		if (!ok || string(value) == "null") && !strings.Contains(options, "omitempty") {
			errs = append(errs, &StateError{Field: key, Want: "a value"})
		}
		delete(found, key)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, &StateError{Field: key, Got: string(found[key])})
	}
	return errors.Join(errs...)
}
