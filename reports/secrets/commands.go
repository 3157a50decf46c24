package secrets

// Of some programs an option of one letter is a password. between is what separates two
// arguments: spaces, the quotes of a list, or the end of a string in memory; others are the
// arguments before the option, up to the next command.
const (
	between = `(?:["']?[ \t]*,?[ \t]*["']|[ \t]+|\n)`
	others  = `["']?(?:` + between + `[^\s"'|;&]+)*?` + between
	given1  = `([^\s"'|;&\\]+)`
)

var commandForms = []form{
	{name: "mysql", keywords: []string{"mysql", "mariadb"}, expr: `\b(?:mysql|mariadb)(?:dump|admin|import|show|check|slap|pump|-[a-z-]+)?` + others + `-p` + given1},
	{name: "password-joined", keywords: []string{"7z", "7za", "7zr", "sshpass", "rar"}, expr: `\b(?:7z[ar]?|sshpass|(?:un)?rar)` + others + `-p` + given1},
	{name: "password-p", keywords: []string{"sshpass", "login", "mongo"},
		expr: `\b(?:sshpass|(?:docker|podman|buildah|skopeo|helm|nerdctl|az)(?:` + others + `)login|mongo(?:sh|dump|restore|export|import)?)` + others + `-p` + between + given1},
	{name: "password-P", keywords: []string{"zip", "sqlcmd", "tsql", "bcp", "ipmitool", "mosquitto_"},
		expr: `\b(?:(?:un)?zip|sqlcmd|tsql|bcp|ipmitool|mosquitto_[a-z]+)` + others + `-P` + between + `?` + given1},
	{name: "redis-cli", keywords: []string{"redis-cli", "valkey-cli"}, expr: `\b(?:redis|valkey)-cli` + others + `-a` + between + given1},
	{name: "ldap", keywords: []string{"ldap"}, expr: `\bldap(?:search|add|modify|delete|modrdn|compare|passwd|whoami)` + others + `-w` + between + `?` + given1},
	{name: "curl-user", keywords: []string{"curl"}, expr: `\bcurl` + others + `(?:-[uU]|--(?:proxy-)?user)(?:` + between + `|=)?[^\s"':]*:` + given1},
	{name: "samba", keywords: []string{"smb", "rpcclient"}, expr: `\b(?:smb[a-z]+|rpcclient)` + others + `(?:-U|--user)(?:` + between + `|=)?[^\s"'%]+%` + given1},
	{name: "openssl-pass", keywords: []string{"pass:"}, expr: `-pass(?:in|out)?` + between + `pass:` + given1},
	{name: "oracle", keywords: []string{"thin:"}, expr: `:thin:[^\s/"']+/([^\s@"']+)@`},
	{name: "netrc", keywords: []string{"login"}, expr: `\blogin\s+\S+\s+password\s+` + given1},
	{name: "directive", keywords: []string{"requirepass", "masterauth", "rootpw"}, expr: `(?m)^[ \t]*(?:requirepass|masterauth|rootpw)[ \t]+["']?` + given1},
}
