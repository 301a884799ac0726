package config

// Secret is a value that prints as <secret>.
type Secret string

// String hides the value from every formatter.
func (Secret) String() string { return "<secret>" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "<secret>" }

// MarshalJSON hides the value from encoders.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"<secret>"`), nil }

// MarshalText hides the value from text encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte("<secret>"), nil }

// Reveal gives the value itself, for the one place that uses it.
func (s Secret) Reveal() string { return string(s) }
