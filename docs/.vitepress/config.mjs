import { defineConfig } from 'vitepress'
import llmstxt from 'vitepress-plugin-llms'

const repository = 'https://github.com/llmsandbox/llmsandbox'

// page names an entry of the sidebar: its text, and the file without .md.
const page = (text, link) => ({ text, link: '/' + link })

export const sidebar = [
  { text: 'Start', items: [page('Quickstart', 'quickstart'), page('How it compares', 'comparison')] },
  {
    text: 'Guides',
    items: [
      page('Data analysis', 'data-analysis'),
      page("An agent's tool", 'agent-tool'),
      page('Charts and artifacts', 'artifacts'),
      page('Plots in Python', 'artifacts-python'),
      page('Libraries', 'libraries'),
      page('Environments', 'environments'),
      page('Templates', 'templates'),
      page('Files', 'files'),
      page('Root and writable files', 'writable-root'),
      page('Network and secrets', 'network'),
      page('Sessions that keep state', 'kernels'),
      page('Notebooks', 'notebooks'),
      page('Long-lived sandboxes', 'attach'),
      page('Pools', 'pools'),
      page('Security policies', 'security-policies'),
      page('MCP server and clients', 'mcp'),
      page('HTTP server', 'server'),
      page('SDKs of E2B', 'e2b'),
    ],
  },
  {
    text: 'Agent frameworks',
    collapsed: true,
    items: [
      page('All of them', 'frameworks'),
      page('OpenAI', 'frameworks/openai'),
      page('OpenAI Agents SDK', 'frameworks/openai-agents'),
      page('Anthropic', 'frameworks/anthropic'),
      page('Claude Agent SDK', 'frameworks/claude-agent-sdk'),
      page('LangChain and LangGraph', 'frameworks/langchain'),
      page('Deep Agents', 'frameworks/deepagents'),
      page('LlamaIndex', 'frameworks/llama-index'),
      page('Pydantic AI', 'frameworks/pydantic-ai'),
      page('CrewAI', 'frameworks/crewai'),
      page('smolagents', 'frameworks/smolagents'),
      page('AutoGen', 'frameworks/autogen'),
      page('AG2', 'frameworks/ag2'),
      page('Google ADK', 'frameworks/google-adk'),
      page('Strands Agents', 'frameworks/strands'),
      page('Vercel AI SDK', 'frameworks/vercel-ai'),
      page('LangChain.js', 'frameworks/langchain-js'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Commands', 'cli'),
      page('Configuration', 'configuration'),
      page('Languages', 'languages'),
      page('Add a language', 'add-a-language'),
      page('Go API', 'go-api'),
      page('Python', 'python'),
      page('JavaScript and TypeScript', 'javascript'),
      page('Glossary', 'glossary'),
    ],
  },
  {
    text: 'Backends',
    items: [
      page('Choose a backend', 'backends'),
      page('In a container', 'containers'),
      page('Images', 'images'),
      page('Docker', 'docker'),
      page('Podman', 'podman'),
      page('Kubernetes', 'kubernetes'),
      page('Micromamba', 'micromamba'),
      page('Runtime options', 'runtime-options'),
      page('Control groups', 'cgroups'),
    ],
  },
  { text: 'Coming from', items: [page('llm-sandbox', 'from-llm-sandbox'), page('E2B', 'from-e2b')] },
  {
    text: 'Internals',
    collapsed: true,
    items: [
      page('Architecture', 'architecture'),
      page('Threat model', 'threat-model'),
      page('Acceptance cases', 'acceptance'),
      page('Attacks', 'abuse'),
      page('Session protocol', 'kernel-protocol'),
      page('Performance', 'performance'),
      page('Dependencies', 'dependencies'),
    ],
  },
]

// leadOut points links that leave docs/ to the repository, so that a page reads the same there and here.
function leadOut(md) {
  const open = md.renderer.rules.link_open
  md.renderer.rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet('href')
    if (href?.startsWith('../')) {
      tokens[i].attrSet('href', `${repository}/blob/main/${href.slice(3)}`)
    }
    return open(tokens, i, options, env, self)
  }
}

export default defineConfig({
  title: 'LLM Sandbox',
  description: 'Run code written by language models without trusting it.',
  lang: 'en',
  outDir: '../dist/docs',
  cleanUrls: true,
  lastUpdated: true,
  markdown: { config: leadOut },
  vite: { plugins: [llmstxt({ sidebar })] },
  themeConfig: {
    nav: [
      { text: 'Quickstart', link: '/quickstart' },
      { text: 'Guides', link: '/data-analysis' },
      { text: 'Reference', link: '/cli' },
      { text: 'Backends', link: '/backends' },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
    footer: { message: 'Apache-2.0' },
  },
})
