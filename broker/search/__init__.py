"""Search over the tools of all servers: keyword, regular expression, embedding, hybrid."""

from broker.search.keyword_index import KeywordIndex
from broker.search.pages import Detail, Filters, Mode, SearchPage, SearchRequest
from broker.search.tool_search import Ranker, ToolSearch
from broker.search.vectors import Embedder, VectorStore

__all__ = [
    "Detail",
    "Embedder",
    "Filters",
    "KeywordIndex",
    "Mode",
    "Ranker",
    "SearchPage",
    "SearchRequest",
    "ToolSearch",
    "VectorStore",
]
