import asyncio

from tools import git

log = await git.git_log(repo_path=".", max_count=20)
shas = [line.split()[1] for line in log.splitlines() if line.startswith("Commit: ")]
patches = await asyncio.gather(*(git.git_show(repo_path=".", revision=sha) for sha in shas))
{sha[:12]: patch.count("\n+") for sha, patch in zip(shas, patches, strict=True)}
