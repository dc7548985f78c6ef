package pack

import (
	stdtar "archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/tar"
)

// Tar writes samples as WebDataset does, for package loader/tar: a file for each part, named by
// the sample's Key and the part's Suffix. Keys must differ.
func Tar() Format[tar.Sample] {
	return Format[tar.Sample]{Name: "tar", Suffix: ".tar", Write: func(w io.Writer, samples iter.Seq2[tar.Sample, error]) error {
		t := stdtar.NewWriter(w)
		for s, err := range samples {
			if err != nil {
				return err
			}
			if s.Key == "" || len(s.Parts) == 0 {
				return errors.New("a sample needs a key and parts")
			}
			for _, p := range s.Parts {
				h := stdtar.Header{Name: s.Key + "." + p.Suffix, Mode: 0o444, Size: int64(len(p.Data)), Typeflag: stdtar.TypeReg}
				if err := t.WriteHeader(&h); err != nil {
					return err
				}
				if _, err := t.Write(p.Data); err != nil {
					return err
				}
			}
		}
		return t.Close()
	}}
}

// TokenError is a token that the vocabulary has not.
type TokenError struct {
	Token      uint32
	Position   int // in its document
	Vocabulary int
}

// Error implements error.
func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d at position %d, want below the vocabulary's %d", e.Token, e.Position, e.Vocabulary)
}

// Tokens writes documents of tokens, one behind the other, as files of llm.c, for package
// loader/tokens. t is dtype.Uint16 or dtype.Uint32, and holds a vocabulary of that size; a token
// that is not below it is a *TokenError. What ends a document is the tokeniser's to add. A shard
// has fewer than 2³¹ tokens, and is in memory until it is written.
func Tokens(t dtype.Type, vocabulary int) Format[[]uint32] {
	return Format[[]uint32]{
		Name: fmt.Sprintf("tokens %v of %d", t, vocabulary), Suffix: ".bin",
		Write: func(w io.Writer, documents iter.Seq2[[]uint32, error]) error {
			head := [256]uint32{20240520, 1}
			most := int64(1 << 16)
			switch t {
			case dtype.Uint16:
			case dtype.Uint32:
				head, most = [256]uint32{20240801, 7}, 1<<32
			default:
				return fmt.Errorf("tokens of %v, want uint16 or uint32", t)
			}
			if vocabulary < 1 || int64(vocabulary) > most {
				return fmt.Errorf("a vocabulary of %d, want 1 to %d in %v", vocabulary, most, t)
			}
			var b []byte
			count := 0
			for document, err := range documents {
				if err != nil {
					return err
				}
				for i, token := range document {
					if int64(token) >= int64(vocabulary) {
						return &TokenError{Token: token, Position: i, Vocabulary: vocabulary}
					}
					if t == dtype.Uint16 {
						b = binary.LittleEndian.AppendUint16(b, uint16(token))
					} else {
						b = binary.LittleEndian.AppendUint32(b, token)
					}
				}
				if count += len(document); int64(count) > math.MaxInt32 {
					return errors.New("the shard has 2³¹ tokens, want fewer: take fewer documents for one")
				}
			}
			head[2] = uint32(count)
			if err := binary.Write(w, binary.LittleEndian, head[:]); err != nil {
				return err
			}
			_, err := w.Write(b)
			return err
		},
	}
}
