// Calls a cloud, or what stands for one, through its SDK as its users do, and prints what
// became of each call as bench/sdk/drive.mjs does, which says how.
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { take } from './pace.mjs';

const modules = {
  'gemini@2': '@google/genai', 'bedrock@3': '@aws-sdk/client-bedrock-runtime',
  'bedrock-signed@3': '@aws-sdk/client-bedrock-runtime',
};

// Whatever an SDK prints must not come between the lines.
console.log = console.error;

const plan = JSON.parse(await text(process.stdin));
const name = modules[plan.sdk];
if (name === undefined) {
  throw new Error(`sdk: ${plan.sdk} is none of ${Object.keys(modules)}`);
}
if (plan.sdk === 'bedrock@3') process.env.AWS_BEARER_TOKEN_BEDROCK = 'key';
const sdk = await import(name);
const { NodeHttpHandler } = await import('@smithy/node-http-handler');
const { version } = JSON.parse(await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url)));

const question = 'How long is a minute?';

function gemini(call) {
  const ai = new sdk.GoogleGenAI({
    apiKey: 'key', httpOptions: { baseUrl: call.url, headers: { 'x-client-id': call.client } },
  });
  const request = { model: 'model', contents: question, config: { maxOutputTokens: call.tokens } };
  return async (said) => {
    const parts = call.stream ? await ai.models.generateContentStream(request) : [await ai.models.generateContent(request)];
    for await (const part of parts) {
      said.text += part.text ?? '';
      said.input = part.usageMetadata?.promptTokenCount ?? said.input;
      said.output = part.usageMetadata?.candidatesTokenCount ?? said.output;
    }
  };
}

function bedrock(call) {
  const client = new sdk.BedrockRuntimeClient({
    region: 'us-east-1', endpoint: call.url,
    // Its own handler speaks HTTP/2 alone, which nobody does without TLS.
    requestHandler: new NodeHttpHandler(),
    ...(plan.sdk === 'bedrock@3' ? {} : { credentials: { accessKeyId: 'AKIA', secretAccessKey: 'secret' } }),
  });
  client.middlewareStack.add((next) => (args) => {
    args.request.headers['x-client-id'] = call.client;
    return next(args);
  }, { step: 'build' });
  const request = {
    modelId: 'us.model-v1:0', messages: [{ role: 'user', content: [{ text: question }] }],
    inferenceConfig: { maxTokens: call.tokens },
  };
  return async (said) => {
    const heard = (usage) => {
      said.input = usage?.inputTokens ?? said.input;
      said.output = usage?.outputTokens ?? said.output;
    };
    if (!call.stream) {
      const answer = await client.send(new sdk.ConverseCommand(request));
      said.text = answer.output.message.content[0].text;
      return heard(answer.usage);
    }
    const answer = await client.send(new sdk.ConverseStreamCommand(request));
    for await (const event of answer.stream) {
      said.text += event.contentBlockDelta?.delta?.text ?? '';
      heard(event.metadata?.usage);
    }
  };
}

async function make(send) {
  const said = { text: '', input: 0, output: 0 };
  try {
    await send(said);
    return { ...said, ok: true };
  } catch (error) {
    return {
      ...said, ok: false, class: error.name, status: error.status ?? error.$metadata?.httpStatusCode ?? 0,
      message: String(error.message),
    };
  }
}

for (const call of plan.calls) {
  const send = (plan.sdk === 'gemini@2' ? gemini : bedrock)(call);
  for (let n = 0; n < call.times; n++) {
    take();
    const result = await make(send);
    process.stdout.write(JSON.stringify({ name: call.name, n, version, ...result, waits: take() }) + '\n');
  }
}
