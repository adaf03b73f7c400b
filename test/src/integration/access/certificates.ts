/** Two certificates of localhost and 127.0.0.1 with their keys, for tests alone; they end in 2126. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Pair {
  cert: string;
  key: string;
}

export const FIRST: Pair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBmjCCAUCgAwIBAgITBbq4cauKz2ZgJ7nMRB42SNG9mTAKBggqhkjOPQQDAjAU
MRIwEAYDVQQDDAlsb2NhbGhvc3QwIBcNMjYxMTMwMTYwMjUyWhgPMjEyNjExMDYx
NjAyNTJaMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABGTdSxZpsk+fvtaKOrDwDZAKOBcqYJ1IjyEtSTeR8orOP2XWPa1rHj8v
q7lKMavt0OddAt+y+Iqq9/R6U4ucy9+jbzBtMB0GA1UdDgQWBBR/GHN7Rq1ayymv
SmV1bpqmUPpMgDAfBgNVHSMEGDAWgBR/GHN7Rq1ayymvSmV1bpqmUPpMgDAPBgNV
HRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAKBggqhkjO
PQQDAgNIADBFAiBgfcFnDovMFkmkbMzXqcQWyZalK6Ps2OnxJm7ird2JCQIhAPCQ
TzMdXQ0xfMmjW8HwICHYH8pt4j1jKshyABJU3FP2
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyEEC8k4mbkMLY9/4
Q4cd1zBV5mVVX5wn4Lxy/SA5C/qhRANCAARk3UsWabJPn77Wijqw8A2QCjgXKmCd
SI8hLUk3kfKKzj9l1j2tax4/L6u5SjGr7dDnXQLfsviKqvf0elOLnMvf
-----END PRIVATE KEY-----
`,
};

export const SECOND: Pair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUU2y2Fc9cWu7Q8OM+gMNImTCl6cgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDE2MDI1MloYDzIxMjYxMTA2
MTYwMjUyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ7AG6DgAKeCUKD7jam20igNLIjdJ3/hg/APQkHMGj1joTsksTyU86y
seNnauWpgEUd5D/zoES2jvuFeUVFYEAko28wbTAdBgNVHQ4EFgQU2Z3uaMnhDqj2
cd6uZ3XFwBwCA8UwHwYDVR0jBBgwFoAU2Z3uaMnhDqj2cd6uZ3XFwBwCA8UwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAKYgUCe3j6HNLvWQ67oRVxBnfackWwT5zor1A0W85LATAiBq
Xu5xHxLqGnn/8HbzwcDb6Xzsvqe3e0O8nj+Pnl7SdA==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQguYOWc7lE1OWGyUFd
XOEBED3jFpnwo+yUFOYmQ7+D+kOhRANCAAQ7AG6DgAKeCUKD7jam20igNLIjdJ3/
hg/APQkHMGj1joTsksTyU86yseNnauWpgEUd5D/zoES2jvuFeUVFYEAk
-----END PRIVATE KEY-----
`,
};

export interface PairFiles {
  env: { REMUDA_API_TLS_CERT: string; REMUDA_API_TLS_KEY: string };
  write(pair: Pair): Promise<void>;
  remove(): Promise<void>;
}

export async function pairFiles(pair: Pair): Promise<PairFiles> {
  const folder = await mkdtemp(join(tmpdir(), 'remuda-tls-'));
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const write = async (next: Pair): Promise<void> => {
    await writeFile(cert, next.cert);
    await writeFile(key, next.key);
  };
  await write(pair);
  return {
    env: { REMUDA_API_TLS_CERT: cert, REMUDA_API_TLS_KEY: key },
    write,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
