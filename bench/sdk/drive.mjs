// Calls a provider, or what stands for one, through an SDK as its users do, and
// prints what became of each call, one line of JSON each.
//
// On the standard input: {"sdk": …, "calls": [{"name", "url", "client", "stream",
// "times", "tokens"}]}. A call is made so many times, each as soon as the one before
// is over: with a refusal that is a storm.
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { REQUEST, take } from './pace.mjs';

const modules = { 'openai@7': 'openai', 'openai@6': 'openai-6', 'azure@7': 'openai', 'anthropic@1': '@anthropic-ai/sdk' };

// Whatever an SDK prints must not come between the lines.
console.log = console.error;

const plan = JSON.parse(await text(process.stdin));
const name = modules[plan.sdk];
if (name === undefined) {
  throw new Error(`sdk: ${plan.sdk} is none of ${Object.keys(modules)}`);
}
const sdk = await import(name);
const { version } = JSON.parse(await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url)));

// client is as its users make it: nothing is set but where it calls, and who it is.
function client(call) {
  const options = { apiKey: 'key', timeout: REQUEST, defaultHeaders: { 'x-client-id': call.client } };
  switch (plan.sdk) {
    case 'anthropic@1':
      return new sdk.default({ ...options, baseURL: call.url });
    case 'azure@7':
      return new sdk.AzureOpenAI({ ...options, endpoint: call.url, apiVersion: '2024-10-21', deployment: 'model' });
    default:
      return new sdk.default({ ...options, baseURL: `${call.url}/v1` });
  }
}

function request(call) {
  const asked = {
    model: 'model', max_tokens: call.tokens, messages: [{ role: 'user', content: 'How long is a minute?' }],
    stream: call.stream,
  };
  if (call.stream && plan.sdk !== 'anthropic@1') {
    asked.stream_options = { include_usage: true };
  }
  return asked;
}

// heard adds an answer, or an event of one, to what the caller knows of it.
function heard(said, part) {
  const choice = part.choices?.[0];
  said.text += choice?.message?.content ?? choice?.delta?.content ?? part.delta?.text ?? part.content?.[0]?.text ?? '';
  const usage = part.usage ?? part.message?.usage;
  said.input = usage?.prompt_tokens ?? usage?.input_tokens ?? said.input;
  said.output = usage?.completion_tokens ?? usage?.output_tokens ?? said.output;
}

async function make(of, call) {
  const said = { text: '', input: 0, output: 0 };
  const endpoint = plan.sdk === 'anthropic@1' ? of.messages : of.chat.completions;
  try {
    const answer = await endpoint.create(request(call));
    if (call.stream) {
      for await (const event of answer) heard(said, event);
    } else {
      heard(said, answer);
    }
    return { ...said, ok: true };
  } catch (error) {
    const body = error.error?.error ?? error.error;
    return {
      ...said, ok: false, class: error.constructor.name, status: error.status ?? 0,
      type: body?.type ?? '', code: String(body?.code ?? ''), message: String(error.message),
    };
  }
}

for (const call of plan.calls) {
  const of = client(call);
  for (let n = 0; n < call.times; n++) {
    take();
    const result = await make(of, call);
    process.stdout.write(JSON.stringify({ name: call.name, n, version, ...result, waits: take() }) + '\n');
  }
}
