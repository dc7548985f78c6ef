package order_test

import "github.com/leat-go/leat/internal/invariants"

const invariantsOn = invariants.Enabled
