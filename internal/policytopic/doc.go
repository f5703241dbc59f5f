// Package policytopic is what every writer of weir.policies shares: how a document becomes a record, how
// a record is sent, and what the installation's record must say before anything is written.
package policytopic
