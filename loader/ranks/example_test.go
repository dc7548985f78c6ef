package ranks_test

import (
	"fmt"
	"log"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/ranks"
)

func ExampleShardFromEnv() {
	// In a program: place, err := ranks.ShardFromEnv(ranks.EnvOptions{})
	launched := map[string]string{"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}
	place, err := ranks.ShardFromEnv(ranks.EnvOptions{Lookup: func(name string) (string, bool) {
		value, ok := launched[name]
		return value, ok
	}})
	if err != nil {
		log.Fatal(err)
	}
	log.Print(place)
	o := loader.Options{Shuffle: true, Shard: place.Shard}
	fmt.Printf("%+v, device %d\n", o.Shard, place.Local.Index)
	// Output: {Index:3 Count:8}, device 1
}
