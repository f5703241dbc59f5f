package store

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// The library takes the credentials of sentinels and of servers from one function, which is told the address
// alone. So a sentinel's connection gives an address that says what it is, and is known when it is dialled by
// its dialer's resolver: the usual one, under a pointer of its own.
var sentinelResolver = &net.Resolver{}

type sentinelConn struct{ net.Conn }

type sentinelAddr struct{ net.Addr }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

func dial(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (conn net.Conn, err error) {
	if t != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: t}).DialContext(ctx, "tcp", addr)
	} else {
		conn, err = d.DialContext(ctx, "tcp", addr)
	}
	if err == nil && d.Resolver == sentinelResolver {
		conn = sentinelConn{conn}
	}
	return conn, err
}

// credentials reads the password anew for each connection.
func (c Config) credentials(to rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	user, field, file := c.Username, "passwordFile", c.PasswordFile
	if _, ok := to.Address.(sentinelAddr); ok {
		user, field, file = c.Sentinel.Username, "sentinel.passwordFile", c.Sentinel.PasswordFile
	}
	password, err := readPassword(field, file)
	return rueidis.AuthCredentials{Username: user, Password: password}, err
}
