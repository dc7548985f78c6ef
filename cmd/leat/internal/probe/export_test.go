package probe

// PTX is the product's, for the tests.
var PTX = ptx
