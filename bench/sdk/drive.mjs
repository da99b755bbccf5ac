// Calls a provider, or what stands for one, through an SDK as its users do, and
// prints what became of each call, one line of JSON each.
//
// On the standard input: {"sdk": …, "calls": [{"name", "url", "client", "what",
// "stream", "times", "tokens"}]}. A call is made so many times, each as soon as the one before
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

const question = 'How long is a minute?';

// send calls what is to be called.
function send(of, call) {
  const messages = [{ role: 'user', content: question }];
  if (plan.sdk === 'anthropic@1') {
    return of.messages.create({ model: 'model', max_tokens: call.tokens, messages, stream: call.stream });
  }
  switch (call.what) {
    case 'responses':
      return of.responses.create({
        model: 'model', max_output_tokens: call.tokens, input: question, stream: call.stream,
      });
    case 'embeddings':
      return of.embeddings.create({ model: 'model', input: question });
    default:
      return of.chat.completions.create({
        model: 'model', max_tokens: call.tokens, messages, stream: call.stream,
        ...(call.stream ? { stream_options: { include_usage: true } } : {}),
      });
  }
}

// words is the text in an answer, or in an event of one.
function words(part) {
  if (part.type === 'response.output_text.delta') {
    return part.delta;
  }
  return part.choices?.[0]?.message?.content ?? part.choices?.[0]?.delta?.content ?? part.delta?.text ??
    part.content?.[0]?.text ?? part.output_text ?? part.data?.map((one) => one.embedding.length).join() ?? '';
}

// heard adds an answer, or an event of one, to what the caller knows of it.
function heard(said, part) {
  said.text += words(part);
  const usage = part.usage ?? part.message?.usage ?? part.response?.usage;
  said.input = usage?.prompt_tokens ?? usage?.input_tokens ?? said.input;
  said.output = usage?.completion_tokens ?? usage?.output_tokens ?? said.output;
  said.whole ||= part.type === 'response.completed' || part.type === 'response.incomplete';
}

async function make(of, call) {
  // An SDK may hand over an error in a stream of responses as one more event.
  const said = { text: '', input: 0, output: 0, whole: !(call.stream && call.what === 'responses') };
  try {
    const answer = await send(of, call);
    if (call.stream) {
      for await (const event of answer) heard(said, event);
    } else {
      heard(said, answer);
    }
    return { ...said, ok: said.whole };
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
