#!/bin/sh
# Makes the certificates that the tests of TLS use. They are good from 2020 to 2120, and secret to
# nobody.
set -e
cd "$(dirname "$0")"
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
sign() { # name, subject, extension
    new_key "$1.key"
    openssl req -new -key "$1.key" -subj "$2" -out request.pem
    cat > ca.conf <<EOF
[ca]
default_ca = it
[it]
database = index.txt
rand_serial = yes
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
$3
EOF
    : > index.txt
    openssl ca -batch -notext -config ca.conf -cert ca.pem -keyfile ca.key -in request.pem \
        -startdate 20200101000000Z -enddate 21200101000000Z -out "$1.pem"
}
for ca in ca other-ca; do
    new_key "$ca.key"
    openssl req -x509 -new -key "$ca.key" -subj "/CN=$ca of the tests" -days 36500 -out "$ca.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
done
sign server "/CN=upstream.test" "subjectAltName=DNS:upstream.test,IP:127.0.0.1"
sign client "/CN=gateway" "extendedKeyUsage=clientAuth"
cat client.pem client.key > client-store.pem
openssl pkcs12 -export -in client.pem -inkey client.key -name gateway -passout pass:secret \
    -out client-store.p12
mkdir keep && mv ca.pem other-ca.pem server.pem server.key client-store.pem client-store.p12 keep
find . -maxdepth 1 -type f ! -name make.sh -delete
mv keep/* . && rmdir keep
