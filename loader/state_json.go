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
		if err := checkState(found); err != nil {
			return err
		}
	}
	*s = State(read)
	return nil
}

// checkState reports the keys of a State and of its marks that are missing, or not known.
func checkState(found map[string]json.RawMessage) error {
	var marks []map[string]json.RawMessage
	if text, ok := found["marks"]; ok {
		if err := json.Unmarshal(text, &marks); err != nil {
			return fmt.Errorf("loader: the state: marks: %w", err)
		}
	}
	err := checkKeys(found, reflect.TypeFor[State](), "")
	for i, mark := range marks {
		err = errors.Join(err, checkKeys(mark, reflect.TypeFor[ShardMark](), fmt.Sprintf("marks[%d].", i)))
	}
	return err
}

// checkKeys takes the keys of a struct out of found, and reports those that are missing
// and those that are left. in is what stands before their names.
func checkKeys(found map[string]json.RawMessage, of reflect.Type, in string) error {
	var errs []error
	for _, field := range reflect.VisibleFields(of) {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, ok := found[key]
		if (!ok || string(value) == "null") && !strings.Contains(options, "omitempty") {
			errs = append(errs, &StateError{Field: in + key, Want: "a value"})
		}
		delete(found, key)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, &StateError{Field: in + key, Got: string(found[key])})
	}
	return errors.Join(errs...)
}
