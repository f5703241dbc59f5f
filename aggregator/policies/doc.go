// Package policies keeps what weir.policies says: the policies in force as a snapshot, and the record
// of the installation. It publishes a directory's files under origin file.
//
// Book and plan are pure; Watcher and Directory are the shells around them.
package policies
