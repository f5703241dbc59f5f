// Package content is what an answer says to the client, in words and numbers, apart from how a server encodes it: amounts
// as header fields have them, the problem of RFC 9457, who is told what. Both servers of package extauthz take it from
// here. Its functions are pure.
package content
