// Package csv has the rows of CSV files by number, in any order. Where the rows are is kept in
// an index: see package lines.
//
//	data, err := csv.Open(ctx, files, []csv.Column{
//		{Field: loader.Field{Name: "size", DType: dtype.Float32, Shape: []int{4}}, From: "sepal_length"},
//		{Field: loader.Field{Name: "species", DType: dtype.Int64}, Categories: []string{"setosa", "versicolor", "virginica"}},
//	}, csv.Options{})
//	defer data.Close()
//
// # The format
//
// It is that of RFC 4180, as encoding/csv reads it: a cell that begins with a quote ends with
// the next one that is alone, and may have commas, line ends and doubled quotes; a quote in any
// other cell is an error. Lines that are empty are left out, as is a mark of the order of bytes
// at the beginning. All rows have as many cells as the first. Numbers may have spaces around
// them.
//
// A quote that is not closed makes all that follows one cell. Open finds it, because such a row
// is longer than Options.MaxLine or has no end, and names the row and its offset.
package csv
