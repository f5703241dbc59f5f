// Package world is one installation of weir on loopback, made of its own programs and the real
// parts, with policies and loads of known shape. Tests of the whole system and the commands of
// test/measure share it.
package world
