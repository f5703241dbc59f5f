// Package config is the configuration files of weir's programs: one type a program, with the YAML keys
// in its tags and the defaults in a function beside it. A field's comment is its documentation: the
// reference page (docs/reference/configuration.md) and the flags' help are made from it. The flag of a
// field is its path in lower case with dashes, kafka.tls.caFile is --kafka-tls-ca-file, unless a flag
// tag says otherwise.
//
// Passwords and keys are read from files, never written here. What is not here, weir decides itself.
package config

//go:generate go run ../../internal/docgen
