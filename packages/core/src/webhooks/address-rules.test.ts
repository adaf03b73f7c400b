import { describe, expect, it } from 'vitest';
import { NOTHING_ALLOWED, parseAllowed, refusedAddress, refusedUrl } from './address-rules.js';

const PUBLIC = ['8.8.8.8', '2606:4700::1111', '64:ff9b::808:808', '::ffff:8.8.8.8'];
const INSIDE = {
  'this machine': ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::'],
  private: ['10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fec0::1'],
  'metadata services': [
    '169.254.169.254',
    'fd00:ec2::254',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
  ],
  'link-local, with and without a zone': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0'],
  'to many or to nobody': ['224.0.0.1', '255.255.255.255', '240.0.0.1', 'ff02::1', '100::1', '4000::1'],
  'IPv4 inside IPv6': [
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '::127.0.0.1',
    '::7f00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::808:808',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
  ],
};

describe('by address', () => {
  it.each(PUBLIC)('%s may be reached', (address) =>
    expect(refusedAddress(address, NOTHING_ALLOWED)).toBeUndefined(),
  );

  for (const [kind, addresses] of Object.entries(INSIDE)) {
    it.each(addresses)(`${kind}: %s is refused`, (address) =>
      expect(refusedAddress(address, NOTHING_ALLOWED)).toContain(address),
    );
  }
});

describe('by URL', () => {
  const refused = (url: string, allow = ''): string | undefined =>
    refusedUrl(new URL(url), parseAllowed(allow));

  it.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
    'http://0/',
    'http://①②⑦.0.0.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'https://169.254.169.254/latest/meta-data/',
    'http://localhost/',
    'http://LOCALHOST:8080/',
    'http://localhost./',
    'http://sink.localhost/',
  ])('%s is refused', (url) => expect(refused(url)).toBeTypeOf('string'));

  it.each(['https://example.org/hook', 'https://8.8.8.8/', 'http://[2606:4700::1111]:8443/'])(
    '%s passes: its name is resolved when it is connected',
    (url) => expect(refused(url)).toBeUndefined(),
  );

  it.each([
    ['http://127.0.0.1:9000/', '127.0.0.0/8'],
    ['http://[::ffff:127.0.0.1]/', '127.0.0.1'],
    ['http://[fd00::7]/', 'fd00::/8'],
    ['http://localhost:3000/', '10.0.0.0/8, localhost'],
    ['http://Sink.internal./', 'sink.internal'],
  ])('%s passes where %s is allowed', (url, allow) => expect(refused(url, allow)).toBeUndefined());

  it('what is allowed opens no more than itself', () => {
    expect(refused('http://10.0.0.1/', '127.0.0.0/8')).toBeTypeOf('string');
    expect(refused('http://[::1]/', '0.0.0.0/0')).toBeTypeOf('string');
    expect(refused('http://localhost/', '127.0.0.0/8')).toBeTypeOf('string');
  });
});

it.each(['10.0.0.0/33', '300.1.1.1', '10.0.0', 'a b', 'http://x/'])('"%s" cannot be allowed', (entry) =>
  expect(() => parseAllowed(entry)).toThrow(entry),
);
