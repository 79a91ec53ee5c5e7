'use strict';
// Preloaded by NODE_OPTIONS where a sandbox has a network: makes http, https and fetch of
// versions of Node that do not read HTTP_PROXY use it. Newer ones do so by themselves.
(() => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major >= 24 || (major === 22 && minor >= 21)) return;
  const proxy = process.env.HTTPS_PROXY || process.env.HTTP_PROXY;
  if (!proxy) return;
  const http = require('http');
  const https = require('https');
  const net = require('net');
  const tls = require('tls');

  let at;
  try { at = new URL(proxy); } catch { return; }
  const bare = (host) => String(host || 'localhost').replace(/^\[|\]$/g, '').toLowerCase();
  const local = (host) => host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
  const shown = (host) => (host.includes(':') ? `[${host}]` : host);

  // tunnel calls back once with an error or a socket to host and port.
  function tunnel(host, port, callback) {
    const authority = `${shown(host)}:${port}`;
    const socket = net.connect(Number(at.port) || 80, at.hostname);
    let answer = Buffer.alloc(0);
    const fail = (error) => {
      socket.destroy();
      callback(error);
    };
    const onClose = () => fail(new Error(`the proxy closed the connection to ${authority}`));
    const onError = (error) => {
      socket.off('close', onClose);
      fail(error);
    };
    const refuse = (body, length) => {
      const text = body.subarray(0, length).toString('utf8').trim();
      const error = new Error(text || `the proxy refused ${authority}`);
      error.code = 'ECONNREFUSED';
      socket.off('close', onClose);
      socket.off('error', onError);
      socket.on('error', () => {});
      fail(error);
    };
    const onData = (chunk) => {
      answer = Buffer.concat([answer, chunk]);
      const end = answer.indexOf('\r\n\r\n');
      if (end < 0) {
        if (answer.length > 65536) refuse(Buffer.alloc(0), 0);
        return;
      }
      const head = answer.subarray(0, end).toString('latin1');
      const body = answer.subarray(end + 4);
      if (/^HTTP\/1\.[01] 200\b/.test(head)) {
        socket.off('data', onData);
        socket.off('close', onClose);
        socket.off('error', onError);
        if (body.length) socket.unshift(body);
        callback(null, socket);
        return;
      }
      const length = Math.min(Number((/^content-length: *(\d+)/im.exec(head) || [])[1]) || 0, 65536);
      if (body.length >= length) refuse(body, length);
    };
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.on('error', onError);
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  }

  for (const [agent, port] of [[http.Agent, 80], [https.Agent, 443]]) {
    const direct = agent.prototype.createConnection;
    agent.prototype.createConnection = function createConnection(options, callback) {
      const host = bare(options && (options.host || options.hostname));
      if (!options || typeof callback !== 'function' || options.socketPath || options.socket || local(host)) {
        return direct.apply(this, arguments);
      }
      tunnel(host, options.port || port, (error, socket) => {
        if (error) callback(error);
        else if (agent === http.Agent) callback(null, socket);
        else callback(null, direct.call(this, { ...options, socket }));
      });
    };
  }

  // fetch is loaded when it is first used, and its dispatcher with it.
  if (typeof globalThis.fetch !== 'function') return;
  const dispatcher = Symbol.for('undici.globalDispatcher.1');
  const connect = (options, callback) => {
    const host = bare(options.hostname);
    const secure = options.protocol === 'https:';
    const port = options.port || (secure ? 443 : 80);
    const ready = (error, socket) => {
      if (error || !secure) {
        callback(error, socket);
        return;
      }
      const failed = (problem) => callback(problem);
      const wrapped = tls.connect({ socket, servername: options.servername || (net.isIP(host) ? '' : host), ALPNProtocols: ['http/1.1'] });
      wrapped.once('error', failed);
      wrapped.once('secureConnect', () => {
        wrapped.off('error', failed);
        callback(null, wrapped);
      });
    };
    if (!local(host)) {
      tunnel(host, port, ready);
      return;
    }
    const socket = net.connect(port, host);
    const failed = (problem) => callback(problem);
    socket.once('error', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      ready(null, socket);
    });
  };
  const fetch = globalThis.fetch;
  let installed = false;
  globalThis.fetch = function (...args) {
    if (!installed) {
      installed = true;
      void globalThis.Response; // loads it
      const before = globalThis[dispatcher];
      if (before) globalThis[dispatcher] = new before.constructor({ connect });
    }
    return fetch.apply(this, args);
  };
})();
