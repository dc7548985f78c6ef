package compose_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// letters is a dataset of the letters of a word.
func letters(word string) loader.Dataset {
	return loader.FromSlice([]byte(word), []loader.Field{{Name: "letter", DType: dtype.Uint8}},
		func(_ context.Context, letter byte, row *loader.Row) error {
			return loader.Write(row, "letter", letter)
		})
}

// spell prints the letters of a dataset, a line an epoch.
func spell(ds loader.Dataset, epochs int) {
	ld, err := loader.New(ds, 4, loader.Options{Epochs: epochs, Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 2)
	if err != nil {
		log.Fatal(err)
	}
	run := ld.Start(context.Background(), loader.Cursor{}, mem)
	defer run.Close()
	for {
		batch, err := run.Next(context.Background())
		switch {
		case errors.Is(err, loader.ErrEpochEnd):
			fmt.Println()
			continue
		case errors.Is(err, loader.ErrEnd):
			return
		case err != nil:
			log.Fatal(err)
		}
		fmt.Printf("%s", ld.Layout().Rows(0, batch))
		mem.Put(batch.Slot)
	}
}

func ExampleSubset() {
	ds, err := compose.Subset(letters("retina"), []int{1, 0, 1})
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// ere
}

func ExampleTake() {
	ds, err := compose.Take(letters("retina"), 3)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// ret
}

func ExampleSkip() {
	ds, err := compose.Skip(letters("retina"), 3)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// ina
}

func ExampleRepeat() {
	ds, err := compose.Repeat(letters("tom"), 2)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// tomtom
}

func ExampleConcat() {
	ds, err := compose.Concat(letters("mill"), letters("wheel"))
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// millwheel
}

// Each epoch has another order, in the first letters only.
func ExampleShuffle() {
	first, err := compose.Shuffle(letters("abcd"), 1)
	if err != nil {
		log.Fatal(err)
	}
	ds, err := compose.Concat(first, letters("wxyz"))
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 3)
	// Output:
	// acdbwxyz
	// abdcwxyz
	// cbadwxyz

}

func ExampleSelect() {
	backwards, err := compose.Select(letters("retina"), 6, func(_, i int) int { return 5 - i })
	if err != nil {
		log.Fatal(err)
	}
	spell(backwards, 1)
	// Output:
	// aniter
}

func ExampleSplit() {
	parts, err := compose.Split(letters("abcdefghijklmnopqrstuvwxyz"), 1, 0.8, 0.2)
	if err != nil {
		log.Fatal(err)
	}
	training, validation := parts[0], parts[1]
	spell(training, 1)
	spell(validation, 1)
	// Output:
	// abcdeghijknoprstuvxy
	// flmqwz

}

func ExampleSplitBy() {
	side := func(i int) string { return "abcdefghijklmnopqrstuvwxyz"[i/5*5 : i/5*5+1] } // five letters have one key
	parts, err := compose.SplitBy(letters("abcdefghijklmnopqrstuvwxyz"), 1, side, 0.5, 0.5)
	if err != nil {
		log.Fatal(err)
	}
	spell(parts[0], 1)
	spell(parts[1], 1)
	// Output:
	// pqrstuvwxyz
	// abcdefghijklmno

}

func ExampleSplitN() {
	parts, err := compose.SplitN(letters("abcdefgh"), 1, 6, 2)
	if err != nil {
		log.Fatal(err)
	}
	spell(parts[0], 1)
	spell(parts[1], 1)
	// Output:
	// bgaefc
	// dh

}

// An image and its label, from two datasets.
func ExampleZip() {
	labels := loader.FromSlice([]int64{7, 2}, []loader.Field{{Name: "label", DType: dtype.Int64}},
		func(_ context.Context, label int64, row *loader.Row) error { return loader.Write(row, "label", label) })
	ds, err := compose.Zip(letters("ab"), labels)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Fields())
	_, err = compose.Zip(letters("ab"), letters("abc"))
	fmt.Println(err)
	// Output:
	// [letter uint8 label int64]
	// compose: Zip: datasets[1] is a dataset of 3 samples, want 2, as many as datasets[0] has
	// compose: Zip: datasets[1] is a dataset with the field letter uint8, want a name that no field of datasets[0] has
}

// Capital letters.
func ExampleMap() {
	capitals, err := compose.Map(letters("retina"), letters("").Fields(), func(_ context.Context, in, out *loader.Row) error {
		return loader.Write(out, "letter", loader.Value[byte](in, "letter")[0]-'a'+'A')
	})
	if err != nil {
		log.Fatal(err)
	}
	spell(capitals, 1)
	// Output:
	// RETINA
}

func ExampleFilter() {
	word := "retina"
	vowels, err := compose.Filter(letters(word), func(i int) bool { return strings.ContainsRune("aeiou", rune(word[i])) })
	if err != nil {
		log.Fatal(err)
	}
	spell(vowels, 1)
	// Output:
	// eia
}

func ExampleFilterRead() {
	vowels, err := compose.FilterRead(context.Background(), letters("retina"), func(_ context.Context, _ int, sample *loader.Row) (bool, error) {
		return strings.ContainsRune("aeiou", rune(loader.Value[byte](sample, "letter")[0])), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	spell(vowels, 1)
	// Output:
	// eia
}

// Three of four letters are of the first word, at every moment. The second is short: it is
// gone through several times, in another order each time.
func ExampleMix() {
	ds, err := compose.Mix(1, compose.UntilAllEnded,
		compose.Source{Dataset: letters("abcdefghijkl"), Weight: 3, InOrder: true},
		compose.Source{Dataset: letters("XYZ"), Weight: 1})
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 2)
	// Output:
	// aXbcdYefgZhijYkl
	// aZbcdXefgYhijXkl

}

// The second word comes in at the seventh letter.
func ExampleMixSteps() {
	ds, err := compose.MixSteps(1, compose.Once,
		[]compose.Step{{From: 0, Weights: []float64{1, 0}}, {From: 6, Weights: []float64{1, 1}}},
		compose.Source{Dataset: letters("abcdefghi"), InOrder: true},
		compose.Source{Dataset: letters("XYZ"), InOrder: true})
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// abcdefXgYhZi

}

func ExampleWeighted() {
	ds, err := compose.Weighted(letters("abc"), []float64{8, 1, 1}, 20, 1)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 2)
	// Output:
	// aacaaaaaacaaaaaaaaaa
	// aaaaaaaaaaaaabaaaabb

}

// The vowel and the consonants take turns.
func ExampleBalanced() {
	word := "strengths"
	labels := make([]int, len(word))
	labels[strings.Index(word, "e")] = 1
	ds, err := compose.Balanced(letters(word), labels, 1)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	// Output:
	// tesenesegeretehe

}

// Samples of a batch of two are of similar length.
func ExampleByLength() {
	word := "918273645546372819" // each letter is the length of its sample
	lengths := make([]int, len(word))
	for i := range word {
		lengths[i] = int(word[i] - '0')
	}
	ds, err := compose.ByLength(letters(word), lengths, 2, 1)
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 2)
	// Output:
	// 432156995678784312
	// 554411872266338799

}

// timeout is an error that calls itself temporary.
type timeout struct{}

func (timeout) Error() string   { return "timeout" }
func (timeout) Temporary() bool { return true }

func ExampleRetry() {
	attempts := 0
	remote := loader.FromFunc(1, letters("").Fields(), func(_ context.Context, _ int, row *loader.Row) error {
		if attempts++; attempts < 3 {
			return timeout{}
		}
		return loader.Write(row, "letter", byte('a'))
	})
	ds, err := compose.Retry(remote, compose.RetryOptions{Wait: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	spell(ds, 1)
	fmt.Println(attempts, "attempts")
	// Output:
	// a
	// 3 attempts
}

// Each letter is read once, although there are three epochs.
func ExampleCacheMemory() {
	reads := 0
	slow := loader.FromFunc(3, letters("").Fields(), func(_ context.Context, i int, row *loader.Row) error {
		reads++ // a loader with one worker reads one sample at a time
		return loader.Write(row, "letter", "abc"[i])
	})
	cache, err := compose.CacheMemory(slow, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	spell(cache, 3)
	fmt.Println(reads, "reads, held:", cache.Stats().Held)
	// Output:
	// abc
	// abc
	// abc
	// 3 reads, held: 3
}

// What is in the file is read from there in later runs too, until the version changes.
func ExampleCacheFile() {
	directory, err := os.MkdirTemp("", "cache")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	for _, version := range []string{"1", "1", "2"} {
		cache, err := compose.CacheFile(letters("abc"), filepath.Join(directory, "letters"), version)
		if err != nil {
			log.Fatal(err)
		}
		if reason := cache.Stats().Reason; reason != "" {
			fmt.Println("built anew:", reason)
		}
		if err := cache.Build(context.Background()); err != nil {
			log.Fatal(err)
		}
		spell(cache, 1)
		fmt.Println(cache.Stats().Reads, "reads, whole:", cache.Stats().Whole)
		if err := cache.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// abc
	// 3 reads, whole: true
	// abc
	// 0 reads, whole: true
	// built anew: it was made with version "1", this is "2"
	// abc
	// 3 reads, whole: true
}

// file is a dataset that is closed.
type file struct{ loader.Dataset }

func (file) Close() error {
	fmt.Println("closed")
	return nil
}

// One file is part of two datasets, and is closed once.
func ExampleClose() {
	parts, err := compose.SplitN(&file{letters("retina")}, 1, 4, 2)
	if err != nil {
		log.Fatal(err)
	}
	if err := compose.Close(parts...); err != nil {
		log.Fatal(err)
	}
	// Output:
	// closed
}
