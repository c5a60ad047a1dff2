//! Which variable pi takes a provider's key from (agent.md, Keys): a key on a command line could be
//! read by every process of the same user.
//!
//! Source: `getApiKeyEnvVars` of pi-ai 0.73.1, 0.87.1 and of pi 1.5.2 (tests/fixtures/pi-keys.json
//! has what each of them says), and of amazon-bedrock what its provider reads besides.

/// Each provider that has such a variable, in alphabetical order.
const VARIABLES: [(&str, &str); 43] = [
    ("amazon-bedrock", "AWS_BEARER_TOKEN_BEDROCK"),
    ("ant-ling", "ANT_LING_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("azure", "AZURE_OPENAI_API_KEY"),
    ("azure-openai-responses", "AZURE_OPENAI_API_KEY"),
    ("baseten", "BASETEN_API_KEY"),
    ("cerebras", "CEREBRAS_API_KEY"),
    ("cloudflare-ai-gateway", "CLOUDFLARE_API_KEY"),
    ("cloudflare-workers-ai", "CLOUDFLARE_API_KEY"),
    ("deepseek", "DEEPSEEK_API_KEY"),
    ("fireworks", "FIREWORKS_API_KEY"),
    ("github-copilot", "COPILOT_GITHUB_TOKEN"),
    ("google", "GEMINI_API_KEY"),
    ("google-vertex", "GOOGLE_CLOUD_API_KEY"),
    ("groq", "GROQ_API_KEY"),
    ("huggingface", "HF_TOKEN"),
    ("kimi-coding", "KIMI_API_KEY"),
    ("meta", "META_API_KEY"),
    ("minimax", "MINIMAX_API_KEY"),
    ("minimax-cn", "MINIMAX_CN_API_KEY"),
    ("mistral", "MISTRAL_API_KEY"),
    ("moonshotai", "MOONSHOT_API_KEY"),
    ("moonshotai-cn", "MOONSHOT_API_KEY"),
    ("nvidia", "NVIDIA_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("opencode", "OPENCODE_API_KEY"),
    ("opencode-go", "OPENCODE_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
    ("qwen-token-plan", "QWEN_TOKEN_PLAN_API_KEY"),
    ("qwen-token-plan-cn", "QWEN_TOKEN_PLAN_CN_API_KEY"),
    ("qwen-token-plan-individual", "QWEN_TOKEN_PLAN_API_KEY"),
    ("qwen-token-plan-individual-cn", "QWEN_TOKEN_PLAN_CN_API_KEY"),
    ("radius", "RADIUS_API_KEY"),
    ("together", "TOGETHER_API_KEY"),
    ("typesafe", "TYPESAFE_API_KEY"),
    ("vercel-ai-gateway", "AI_GATEWAY_API_KEY"),
    ("xai", "XAI_API_KEY"),
    ("xiaomi", "XIAOMI_API_KEY"),
    ("xiaomi-token-plan-ams", "XIAOMI_TOKEN_PLAN_AMS_API_KEY"),
    ("xiaomi-token-plan-cn", "XIAOMI_TOKEN_PLAN_CN_API_KEY"),
    ("xiaomi-token-plan-sgp", "XIAOMI_TOKEN_PLAN_SGP_API_KEY"),
    ("zai", "ZAI_API_KEY"),
    ("zai-coding-cn", "ZAI_CODING_CN_API_KEY"),
];

/// The variable that pi takes this provider's key from; None where pi knows of none: the key must
/// then stand in the auth.json of an agent directory.
pub fn variable_of(provider: &str) -> Option<&'static str> {
    let at = VARIABLES.binary_search_by_key(&provider, |(name, _)| name).ok()?;
    Some(VARIABLES[at].1)
}

/// Variables that pi would rather take than the one of [`variable_of`]: with a key given for the
/// run, they must not be there.
pub fn rivals_of(provider: &str) -> &'static [&'static str] {
    match provider {
        "anthropic" => &["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// rule: agent.md, Keys: The key goes into the variable that pi reads for the provider, as
    ///   0.73.1, 0.87.1 and 1.5.2 have it
    #[test]
    fn each_provider_of_each_version_has_the_variable_that_pi_reads() {
        type Versions = BTreeMap<String, BTreeMap<String, Vec<String>>>;
        let text = include_str!("../../tests/fixtures/pi-keys.json");
        let versions: Versions = serde_json::from_str(text).expect("versions of pi");
        assert_eq!(versions.len(), 3);
        let mut seen = BTreeSet::from(["amazon-bedrock".to_owned()]);
        for (version, providers) in &versions {
            for (provider, names) in providers {
                let ours = variable_of(provider).unwrap_or_else(|| panic!("{version} {provider}"));
                let before: Vec<&str> =
                    names.iter().map(String::as_str).take_while(|name| *name != ours).collect();
                assert!(before.len() < names.len(), "{version} {provider}: {names:?}, not {ours}");
                assert!(before.iter().all(|name| rivals_of(provider).contains(name)), "{provider}");
                seen.insert(provider.clone());
            }
        }
        let ours: BTreeSet<String> = VARIABLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(ours, seen, "no provider that no version knows");
        assert!(VARIABLES.is_sorted() && ours.len() == VARIABLES.len());
        assert_eq!((variable_of("mine"), variable_of("openai-codex")), (None, None));
    }
}
